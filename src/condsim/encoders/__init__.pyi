from .backbone import (
    Fusion as Fusion,
    LowRank as LowRank,
    Pooling as Pooling,
    activation_of as activation_of,
    check_hub as check_hub,
    dropout_of as dropout_of,
    load_backbone as load_backbone,
    quiet_loading as quiet_loading,
    resolve_backbone as resolve_backbone,
    without_progress_bars as without_progress_bars,
)
from .conditioning import (
    Inputs as Inputs,
    Layout as Layout,
    Order as Order,
    as_read as as_read,
    card_texts as card_texts,
    check_order as check_order,
    conditional_sentences as conditional_sentences,
    cross_encoder_inputs as cross_encoder_inputs,
)
from .joint import (
    build_bi_encoder as build_bi_encoder,
    build_cross_encoder as build_cross_encoder,
    separator_of as separator_of,
)
from .stored import StoredSentences as StoredSentences, load_tri_encoder as load_tri_encoder
from .tri_encoder import (
    TriEncoder as TriEncoder,
    build_tri_encoder as build_tri_encoder,
    distinct_rows as distinct_rows,
)
