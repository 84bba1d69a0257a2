"""Requests made up from the OpenAPI document: none makes the server fail."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")
schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")

SETTINGS = hypothesis.settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_made_up_requests_get_no_server_error(server):
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    asked = {}
    for found in document.get_all_operations():
        operation = found.ok()
        label = f"{operation.method.upper()} {operation.path}"

        @SETTINGS
        @hypothesis.given(case=operation.as_strategy())
        def ask(case):
            answer = case.call()
            asked.setdefault(label, set()).add(answer.status_code)  # noqa: B023  (called below)
            assert answer.status_code < 500, answer.text

        ask()
    assert len(asked) == 22
    assert all(asked.values())
