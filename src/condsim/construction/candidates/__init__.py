"""Candidate sentence pairs: items, embeddings, near neighbours, filters (C-STS §2.2.1, A.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.construction.candidates.embedding import (
        TextEncoder as TextEncoder,
        caption_vectors as caption_vectors,
        embed as embed,
        find_images as find_images,
        image_vectors as image_vectors,
        load_text_encoder as load_text_encoder,
        mean_vectors as mean_vectors,
        read_vectors as read_vectors,
        unit_length as unit_length,
    )
    from condsim.construction.candidates.filters import (
        PRESETS as PRESETS,
        FilterCounts as FilterCounts,
        FilterSettings as FilterSettings,
        PairFilter as PairFilter,
        filter_files as filter_files,
        preset as preset,
        read_pairs as read_pairs,
    )
    from condsim.construction.candidates.generating import (
        CandidateReport as CandidateReport,
        CandidateSettings as CandidateSettings,
        make_candidates as make_candidates,
    )
    from condsim.construction.candidates.items import (
        Collection as Collection,
        read_items as read_items,
        read_texts as read_texts,
    )
    from condsim.construction.candidates.measures import (
        Measures as Measures,
        bag_of_words as bag_of_words,
        read_stop_words as read_stop_words,
        text_facts as text_facts,
    )
    from condsim.construction.candidates.neighbours import (
        nearest_pairs as nearest_pairs,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "embedding": (
            "TextEncoder caption_vectors embed find_images image_vectors load_text_encoder "
            "mean_vectors read_vectors unit_length"
        ),
        "filters": "FilterCounts FilterSettings PRESETS PairFilter filter_files preset read_pairs",
        "generating": "CandidateReport CandidateSettings make_candidates",
        "items": "Collection read_items read_texts",
        "measures": "Measures bag_of_words read_stop_words text_facts",
        "neighbours": "nearest_pairs",
    },
    extra="build",
)
