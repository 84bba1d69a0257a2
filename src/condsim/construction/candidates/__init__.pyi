from .embedding import (
    TextEncoder as TextEncoder,
    caption_vectors as caption_vectors,
    embed as embed,
    find_images as find_images,
    image_vectors as image_vectors,
    load_text_encoder as load_text_encoder,
    mean_vectors as mean_vectors,
    nearest_pairs as nearest_pairs,
    read_vectors as read_vectors,
    unit_length as unit_length,
)
from .filters import (
    PRESETS as PRESETS,
    FilterCounts as FilterCounts,
    FilterSettings as FilterSettings,
    PairFilter as PairFilter,
    filter_files as filter_files,
    preset as preset,
    read_pairs as read_pairs,
)
from .generating import (
    CandidateReport as CandidateReport,
    CandidateSettings as CandidateSettings,
    check_candidates_file as check_candidates_file,
    make_candidates as make_candidates,
)
from .items import (
    Collection as Collection,
    Measures as Measures,
    bag_of_words as bag_of_words,
    item_name as item_name,
    read_items as read_items,
    read_stop_words as read_stop_words,
    text_facts as text_facts,
)
