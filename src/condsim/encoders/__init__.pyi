from .backbone import (
    activation_of as activation_of,
    dropout_of as dropout_of,
    load_backbone as load_backbone,
    resolve_backbone as resolve_backbone,
    without_progress_bars as without_progress_bars,
)
from .bi_encoder import build_bi_encoder as build_bi_encoder
from .conditioning import (
    Order as Order,
    check_order as check_order,
    conditional_sentences as conditional_sentences,
    cross_encoder_pairs as cross_encoder_pairs,
)
from .cross_encoder import (
    build_cross_encoder as build_cross_encoder,
    pair_separator as pair_separator,
)
from .pooling import Fusion as Fusion, LowRank as LowRank, Pooling as Pooling
from .stored import StoredSentences as StoredSentences, load_tri_encoder as load_tri_encoder
from .tri_encoder import (
    TriEncoder as TriEncoder,
    build_tri_encoder as build_tri_encoder,
    distinct_rows as distinct_rows,
)
