"""Export of a bi-encoder to the folder that scores without torch, and the way back."""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal, cast

from condsim import __version__
from condsim.errors import InputError, ModelError, check_name, one_line, requires_extra

with requires_extra("train"):
    import numpy as np
    import onnx
    import onnxruntime
    import torch
    from numpy.typing import NDArray
    from onnx import numpy_helper
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from tokenizers import Tokenizer
    from torch import Tensor, nn
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from condsim.cache import check_folder
    from condsim.data.csts import iter_csts
    from condsim.io import replacing, write_text
    from condsim.model.builders import build_bi_encoder, without_progress_bars
    from condsim.model.calibration import UNCALIBRATED, Calibration
    from condsim.model.embedding import EmbeddingScorer
    from condsim.model.inputs import card_texts, conditional_sentences
    from condsim.model.onnx import OnnxScorer
    from condsim.model.precision import backbone_of
    from condsim.model.session import TOKENIZER_FILE
    from condsim.model.settings import FILE_NAME, MODEL_FILE, Fact, ModelSettings, model_folder
    from condsim.model.torch import EncoderScorer, kind_of, load_trained
    from condsim.training.quantize import quantize_by_token, quantize_compact, quantize_static
    from condsim.types import FloatArray

# Rows of a file that samples are taken from; more change the measured ranges little.
SAMPLED_ROWS = 256

# Lowest cosine between a traced graph and the model.
MIN_TRACED_COSINE = 0.9999

# Lowest mean cosine between a graph and the encoder rebuilt from it: int8 keeps 0.996 of MiniLM,
# another network next to none.
MIN_MEAN_COSINE = 0.99

SAMPLES_PER_BATCH = 16

# A smaller model needs no scale per token, which makes it a sixth slower.
LARGE_MODEL_PARAMETERS = 50_000_000

# The first opset with LayerNormalization; ONNX Runtime reads it since 1.14.
OPSET = 17

INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")

# Names in a traced graph begin so in the transformer; later modules have no weights to rebuild.
TRANSFORMER_STAGE = "stages.0."

SPECIAL_TOKENS = {
    f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")
}

Arrays = dict[str, NDArray[Any]]

logger = logging.getLogger("condsim")

_SENTENCES, _CONDITIONS = (
    part.splitlines()
    for part in Path(__file__).with_name("samples.txt").read_text("utf-8").split("\n\n")
)

SAMPLES: tuple[tuple[str, str], ...] = tuple(
    (sentence, _CONDITIONS[(3 * number + 5 * repeat) % len(_CONDITIONS)])
    for number, sentence in enumerate(_SENTENCES)
    for repeat in range(4)
)
"""Pairs of sentence and condition, typical of photo captions."""


def sample_cosines(first: EmbeddingScorer, second: EmbeddingScorer) -> FloatArray:
    """Cosines between the embeddings of the samples by two models, ``(samples,)``."""
    sentences, conditions = zip(*SAMPLES, strict=True)
    vectors = first.encode(sentences, conditions), second.encode(sentences, conditions)
    cosines: FloatArray = np.einsum("nd,nd->n", *vectors)
    return cosines


def samples_of(path: Path) -> list[tuple[str, str]]:
    """Take pairs of sentence and condition from the first rows of a C-STS file, and `SAMPLES`."""
    rows = islice(iter_csts(path, labels=False), SAMPLED_ROWS)
    own = [(text, row.condition) for row in rows for text in (row.sentence1, row.sentence2)]
    # Ranges that are measured on a few alike rows are too narrow for other texts.
    return [*own, *SAMPLES]


@dataclass(frozen=True)
class ExportResult:
    """Files of an export, and how near it is to the model.

    Attributes:
        size: Bytes of ``model.onnx``.
        cosine_mean: Mean cosine between exported and original embeddings of the samples.
        cosine_worst: The lowest of these cosines.
        change_mean: Mean change of the scores of pairs of samples under one condition, 0 to 1.
        change_worst: The largest of these changes.
    """

    output: Path
    size: int
    cosine_mean: float
    cosine_worst: float
    change_mean: float
    change_worst: float


@without_progress_bars()
def export_onnx(
    model_folder: Path | str,
    output_folder: Path | str,
    *,
    quantize: Literal["int8"] | None = "int8",
    samples: Sequence[tuple[str, str]] = SAMPLES,
    largest_change: float = 1.0,
    name: str | None = None,
    facts: Mapping[str, Fact] | None = None,
) -> ExportResult:
    """Export a bi-encoder: any transformer, pooling, dense layers; tokens in, embedding out.

    Writes ``model.onnx``, ``tokenizer.json``, ``condsim.json`` and ``README.md``.

    Args:
        model_folder: A folder that sentence-transformers loads, with ``condsim.json`` if it has an
            order and a calibration.
        output_folder: The folder to write; it is made if it is missing, and must not be the
            model's.
        quantize: ``int8`` for a quarter of the size and three times the speed, or None for float32.
            A model of 50 million parameters or more gets embedding tables of 4 bits.
        samples: Pairs of (sentence, condition) as the model will read them, a hundred or so, on
            which the range of activations is measured. Training rows are best.
        largest_change: Where the scores of samples move by more, activations get a scale for each
            token, which is nearer to the model and slower.
        name: Short name, shown in tables; the model's if None.
        facts: Further facts for ``condsim info`` and the card.

    Returns:
        The folder, its size and its cosines to the model.

    Raises:
        InputError: If there are no samples, ``quantize`` is unknown or the folders are the same.
        ModelError: If the model cannot be loaded, is not a bi-encoder or cannot be exported.
    """
    source, output = Path(model_folder), Path(output_folder)
    if quantize is not None:
        check_name("quantize", quantize, ("int8",))
    if not samples:
        raise InputError("The 'samples' must be (sentence, condition) pairs, at least one.")
    model, settings = _load_bi_encoder(source)
    name = name or settings.name
    _check_export(output, name)
    pairs = conditional_sentences(*zip(*samples, strict=True), order=settings.order)
    expected = np.asarray(
        model.encode(pairs, normalize_embeddings=True, show_progress_bar=False), np.float32
    )
    graph, input_names = _trace(model)
    batches = []
    for start in range(0, len(pairs), SAMPLES_PER_BATCH):
        features = model.preprocess(pairs[start : start + SAMPLES_PER_BATCH])
        batches.append({key: features[key].numpy() for key in input_names})
    embeddings = _embeddings(graph, batches)
    cosines = np.einsum("nd,nd->n", embeddings, expected)
    # The negation also catches NaN.
    if not cosines.min() >= MIN_TRACED_COSINE:
        raise ModelError(
            "This model cannot be exported: the traced graph computes something else (its lowest "
            f"cosine to the model is {cosines.min():.4f})."
        )
    weights = sum(parameter.numel() for parameter in model.parameters())
    calibration = settings.calibration or UNCALIBRATED
    conditions = [condition for _, condition in samples]
    is_large = weights >= LARGE_MODEL_PARAMETERS
    methods = (quantize_compact,) if is_large else (quantize_static, quantize_by_token)
    changes = _score_changes(expected, embeddings, conditions, calibration)
    traced = graph
    for method in methods if quantize else ():
        graph = method(traced, batches)
        embeddings = _embeddings(graph, batches)
        changes = _score_changes(expected, embeddings, conditions, calibration)
        if changes.max() <= largest_change:
            break
    cosines = np.einsum("nd,nd->n", embeddings, expected)
    own_facts: dict[str, Fact] = {"parameters": weights, "precision": quantize or "float32"}
    all_facts = {**own_facts, **settings.facts, **(facts or {})}
    settings = replace(
        settings,
        name=name,
        dimension=expected.shape[1],
        max_seq_length=model.max_seq_length,
        facts=all_facts,
        condsim=__version__,
    )
    output.mkdir(parents=True, exist_ok=True)
    with replacing(output / MODEL_FILE) as partial:
        onnx.save(graph, str(partial))
    tokenizer = model.tokenizer
    backend = tokenizer.backend_tokenizer
    # Padding is set for its id alone; the scorer pads by itself.
    backend.enable_padding(pad_id=tokenizer.pad_token_id or 0, pad_token=str(tokenizer.pad_token))
    backend.no_truncation()
    write_text(output / TOKENIZER_FILE, backend.to_str())
    write_card(settings, output)
    settings.save(output)
    size, mean, worst = (output / MODEL_FILE).stat().st_size, cosines.mean(), cosines.min()
    text = "%s: %.1f MB, cosine to float32 %.4f on average, %.4f at worst"
    logger.info(text, output, size / 1e6, mean, worst)
    figures = (mean, worst, changes.mean(), changes.max())
    return ExportResult(output, size, *map(float, figures))


def _check_export(output: Path, name: str) -> None:
    """Refuse a folder with anything but an earlier export of that name."""
    check_folder(output, subject="exported model", own=[MODEL_FILE])
    if (output / MODEL_FILE).is_file() and (output / FILE_NAME).is_file():
        present = ModelSettings.load(output).name
        if present != name or (output / "modules.json").exists():
            raise InputError(
                f"{output} contains the model {present!r}; give another folder to write."
            )


def _load_bi_encoder(source: Path) -> tuple[SentenceTransformer, ModelSettings]:
    """Load a model of sentence-transformers, which may have no settings."""
    scorer = load_trained(source, device="cpu")
    if (source / FILE_NAME).is_file():
        settings = ModelSettings.load(source)
    else:
        settings = ModelSettings(kind_of(source), source.resolve().name, order="condition-first")
    if settings.kind != "bi-encoder":
        raise ModelError(
            f"{source} is a {settings.kind}; only a bi-encoder can be exported. Load the folder "
            "itself with condsim.load, with the extra 'train'."
        )
    model = cast(SentenceTransformer, scorer.model)
    first = next(iter(model.children()))
    if not isinstance(first, Transformer) or not hasattr(model.tokenizer, "backend_tokenizer"):
        raise ModelError(
            f"{source} must begin with a Transformer that has a fast tokenizer; got "
            f"{type(first).__name__} with {type(model.tokenizer).__name__}."
        )
    # Eager attention becomes plain operators, which ONNX Runtime fuses best.
    backbone_of(model).set_attn_implementation("eager")
    return model.float().eval(), settings


def _embeddings(
    graph: onnx.ModelProto, batches: Iterable[dict[str, NDArray[np.int64]]]
) -> FloatArray:
    """Compute the graph's embeddings, ``(samples, dimension)``."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    embeddings: FloatArray = np.concatenate(
        [session.run(["embedding"], batch)[0] for batch in batches]
    )
    return embeddings


def _score_changes(
    before: FloatArray, after: FloatArray, conditions: Sequence[str], calibration: Calibration
) -> FloatArray:
    """Compute how far scores of samples under one condition move, ``(pairs,)``; 0 without pairs."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, condition in enumerate(conditions):
        rows[condition].append(row)
    pairs = [pair for of_condition in rows.values() for pair in pairwise(of_condition)]
    if not pairs:
        return np.zeros(1, np.float32)
    first, second = np.array(pairs).T
    scores = [
        calibration.apply(np.einsum("nd,nd->n", each[first], each[second]))
        for each in (before, after)
    ]
    changes: FloatArray = np.abs(scores[1] - scores[0])
    return changes


class _Pipeline(nn.Module):
    """All modules of an encoder in turn, then scaling to length 1."""

    def __init__(self, model: SentenceTransformer, names: tuple[str, ...]) -> None:
        super().__init__()
        self.stages = nn.ModuleList(model.children())
        self.names = names

    def forward(self, *tokens: Tensor) -> Tensor:
        """Embed tokens."""
        features = dict(zip(self.names, tokens, strict=True))
        for stage in self.stages:
            features = stage(features)
        return nn.functional.normalize(features["sentence_embedding"], p=2.0, dim=-1)


def _trace(model: SentenceTransformer) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Trace an encoder; return the graph and the names of its inputs."""
    # Rows of different lengths, so that the trace covers padding.
    features = model.preprocess([["the color", "A red ball."], ["the animal", "A dog"]])
    names = tuple(name for name in INPUT_NAMES if name in features)
    inputs = {name: features[name] for name in names}
    return traced(_Pipeline(model, names), inputs, "embedding"), names


def traced(network: nn.Module, inputs: Mapping[str, Tensor], output: str) -> onnx.ModelProto:
    """Trace a network of token ids, ``(n, tokens)`` each, with one output of n rows."""
    axes = {name: {0: "batch", 1: "tokens"} for name in inputs} | {output: {0: "batch"}}
    with tempfile.TemporaryDirectory(prefix="condsim-") as folder, warnings.catch_warnings():
        # The exporter warns of itself and of each shape that it reads.
        warnings.simplefilter("ignore")
        path = Path(folder, "traced.onnx")
        with torch.no_grad():
            torch.onnx.export(
                network.eval(),
                tuple(inputs.values()),
                str(path),
                input_names=list(inputs),
                output_names=[output],
                dynamic_axes=axes,
                opset_version=OPSET,
                # The older exporter needs only onnx, and ONNX Runtime's fusions match its graph.
                dynamo=False,
            )
        return onnx.load(str(path))


def write_card(settings: ModelSettings, output: Path) -> None:
    """Write the card of an exported model."""
    facts = "\n".join(
        f"| {name.replace('_', ' ')} | {f'{value:,}' if isinstance(value, int) else value} |"
        for name, value in settings.facts.items()
    )
    first, second = card_texts(settings.order)
    template = Path(__file__).with_name("export_card.md").read_text(encoding="utf-8")
    card = template.format(settings=settings, facts=facts, first=first, second=second)
    write_text(output / "README.md", card)


@without_progress_bars()
def restore_onnx(folder: Path | str, output: Path | str) -> SentenceTransformer:
    """Rebuild an encoder from the folder that `export_onnx` wrote, float32 or int8.

    The weights of an int8 graph are whole steps of their quantization. The activations are float32
    again, so the rebuilt encoder is a little nearer to the one that was exported.

    The graph must be of a BERT with mean pooling, such as the default model. The output is a folder
    that sentence-transformers loads, with ``condsim.json``.
    """
    source = Path(folder)
    # The scorer checks the folder.
    scorer = OnnxScorer(source)
    length = scorer.settings.max_seq_length or 128
    message = f"{source} cannot be rebuilt as a BERT with mean pooling"
    advice = "Give the folder that 'condsim train' wrote, before its export."
    causes = (KeyError, StopIteration, RuntimeError, ValueError)
    with one_line(message, *causes, advice=advice, kind=ModelError):
        graph = onnx.load(str(source / MODEL_FILE))
        constants = _constants(graph)
        weights = _network_weights(graph, constants)
        network = BertModel(_bert_config(graph, weights))
        state = {name: torch.tensor(array) for name, array in weights.items()}
        # BERT's own pooler is unused, and transformers expects its weights.
        for name, value in network.state_dict().items():
            if name.startswith("pooler."):
                state[name] = torch.zeros_like(value)
        network.load_state_dict(state)
        with tempfile.TemporaryDirectory(prefix="condsim-") as checkpoint:
            network.save_pretrained(checkpoint)
            PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
                tokenizer_object=Tokenizer.from_file(str(source / TOKENIZER_FILE)),
                model_max_length=length,
                model_input_names=[tensor.name for tensor in graph.graph.input],
                **SPECIAL_TOKENS,
            ).save_pretrained(checkpoint)
            model = build_bi_encoder(checkpoint, max_seq_length=length)
        rebuilt = EncoderScorer(model.eval(), name=scorer.name, order=scorer.order)
        cosine = float(sample_cosines(rebuilt, scorer).mean())
        if cosine < MIN_MEAN_COSINE:
            raise ValueError(f"its mean cosine to the graph is {cosine:.3f}")
    model.save_pretrained(str(output), create_model_card=False)
    ModelSettings.load(source).save(Path(output))
    return model


@contextmanager
def open_backbone(name: str) -> Iterator[str]:
    """Yield the name or folder to load a backbone from; an exported one is rebuilt temporarily."""
    folder = model_folder(name)
    if not (folder / MODEL_FILE).is_file():
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="condsim-") as rebuilt:
        restore_onnx(folder, rebuilt)
        yield rebuilt


def _constants(graph: onnx.ModelProto) -> Arrays:
    """Stored arrays by name; equal weights, such as biases that are all 0, share one."""
    constants = {item.name: numpy_helper.to_array(item) for item in graph.graph.initializer}
    for node in graph.graph.node:
        if node.op_type == "Identity" and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
        # Vectors of a compact graph are float16.
        elif node.op_type == "Cast" and node.input[0] in constants:
            constants[node.output[0]] = constants.pop(node.input[0])
    return constants


def _network_weights(graph: onnx.ModelProto, constants: Arrays) -> Arrays:
    """Weights of the network, by their names in transformers."""
    weights: Arrays = {}
    for node in graph.graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            product = node.input[1].removesuffix("_weight")
            activation = node.input[0].removesuffix("_quantized").removesuffix("_rest")
            smooth = constants[f"{activation}_smooth"]  # (K,)
            steps = constants[node.input[3]]  # (N,)
            quantized = constants[node.input[1]]  # (K, N)
            weights[_dense_name(product)] = (smooth[:, None] * quantized * steps).T  # (N, K)
        elif node.op_type == "MatMul" and node.input[1] in constants:
            weights[_dense_name(node.output[0])] = constants[node.input[1]].T
    for name, array in constants.items():
        if name.endswith("_bytes"):
            table = name.removesuffix("_bytes")
            weights[_plain_name(table)] = array * constants[f"{table}_steps"]
        elif name.endswith("_int4"):
            table = name.removesuffix("_int4")
            steps = constants[f"{table}_steps"].astype(np.float32)[..., None]
            blocks = array.astype(np.float32).reshape(*steps.shape[:2], -1)
            weights[_plain_name(table)] = (blocks * steps).reshape(array.shape)
        elif name.startswith(TRANSFORMER_STAGE) and not name.endswith("_steps"):
            weights[_plain_name(name)] = array
        elif name.startswith("stages.") and not name.startswith(TRANSFORMER_STAGE):
            raise ValueError(f"{name} follows the transformer")
    return {name: np.array(array, np.float32) for name, array in weights.items()}


def _plain_name(name: str) -> str:
    """Name in transformers of a weight that kept its own: ``stages.0.model.embeddings...``."""
    return name.removeprefix(TRANSFORMER_STAGE).removeprefix("model.")


def _dense_name(product: str) -> str:
    """Name of the weight of a product: ``/stages.0/encoder/layer.0/.../MatMul_output_0``."""
    path = product.removeprefix("/stages.0/").partition("/MatMul")[0]
    return f"{path.replace('/', '.').removeprefix('model.')}.weight"


def _bert_config(graph: onnx.ModelProto, weights: Arrays) -> BertConfig:
    """Derive the configuration from the shapes of the weights and from the traced nodes."""
    words, hidden = weights["embeddings.word_embeddings.weight"].shape
    layers = {int(index) for index in re.findall(r"encoder\.layer\.(\d+)\.", " ".join(weights))}
    norm = next(node for node in graph.graph.node if node.op_type == "LayerNormalization")
    epsilons = [attribute.f for attribute in norm.attribute if attribute.name == "epsilon"]
    return BertConfig(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=len(layers),
        num_attention_heads=hidden // _head_width(graph),
        intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
        max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(weights["embeddings.token_type_embeddings.weight"]),
        layer_norm_eps=float(f"{epsilons[0] if epsilons else 1e-5:.3g}"),
    )


def _head_width(graph: onnx.ModelProto) -> int:
    """Last dimension that the queries of the first layer are reshaped to."""
    nodes = {name: node for node in graph.graph.node for name in node.output}
    reshape = next(
        node
        for node in graph.graph.node
        if node.op_type == "Reshape" and "/self/query/" in node.input[0]
    )
    shape = nodes[reshape.input[1]]
    last = nodes[shape.input[-1]] if shape.op_type == "Concat" else shape
    value = next(attribute.t for attribute in last.attribute if attribute.name == "value")
    return int(numpy_helper.to_array(value).ravel()[-1])
