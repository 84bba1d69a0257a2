# The server with the default model. At run time it needs no network and writes nothing.
FROM python:3.12-slim AS build
# "serve" alone makes a smaller image, without --index and /v1/cluster.
ARG EXTRAS=serve,search
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/condsim \
    && /opt/condsim/bin/pip install --no-cache-dir -c constraints.txt ".[$EXTRAS]"

FROM python:3.12-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin condsim
COPY --from=build /opt/condsim /opt/condsim
ENV PATH=/opt/condsim/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
# A container's own loopback cannot be reached, so callers must need a key.
ENTRYPOINT ["condsim", "serve", "--host", "0.0.0.0"]
CMD ["--api-key-file", "/run/secrets/condsim_keys"]
