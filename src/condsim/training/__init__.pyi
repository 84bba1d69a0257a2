from .adapting import (
    Adaptation as Adaptation,
    AdaptSettings as AdaptSettings,
    LabelledRow as LabelledRow,
    Rehearsal as Rehearsal,
    adapt as adapt,
    load_rehearsal as load_rehearsal,
    read_labelled as read_labelled,
    split_labelled as split_labelled,
)
from .arithmetic import (
    Arithmetic as Arithmetic,
    choose_arithmetic as choose_arithmetic,
    measure as measure,
)
from .batches import (
    PairBatchSampler as PairBatchSampler,
    SourceBatchSampler as SourceBatchSampler,
    SourceCollator as SourceCollator,
    batch_sampler as batch_sampler,
    batches_of as batches_of,
    group_rows as group_rows,
)
from .callbacks import ProgressCallback as ProgressCallback
from .data import (
    load_train as load_train,
    training_set as training_set,
    used_rows as used_rows,
    warn_of_cuts as warn_of_cuts,
)
from .export import (
    SAMPLES as SAMPLES,
    export_onnx as export_onnx,
    restore_onnx as restore_onnx,
    samples_of as samples_of,
)
from .folder import (
    CHECKPOINTS as CHECKPOINTS,
    HISTORY as HISTORY,
    PLACE_KEYS as PLACE_KEYS,
    REPORT as REPORT,
    FinishedRun as FinishedRun,
    check_data as check_data,
    finished_run as finished_run,
    last_checkpoint as last_checkpoint,
    prepare_output as prepare_output,
)
from .mixture import Mixture as Mixture, Units as Units, read_mixture as read_mixture
from .recipe import (
    Recipe as Recipe,
    Source as Source,
    load_recipe as load_recipe,
    save_recipe as save_recipe,
)
from .run import (
    close_process_group as close_process_group,
    fit as fit,
    run_or_resume as run_or_resume,
)
from .saving import average_models as average_models, average_weights as average_weights
from .sweep import (
    Range as Range,
    SweepSpec as SweepSpec,
    load_sweep as load_sweep,
    point_text as point_text,
    run_sweep as run_sweep,
    to_markdown as to_markdown,
)
from .trainer import Run as Run, build_model as build_model, build_run as build_run
