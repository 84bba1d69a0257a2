from .exporting import SAMPLES as SAMPLES, export_onnx as export_onnx, samples_of as samples_of
from .quantize import quantize_static as quantize_static
from .restoring import (
    exported_folder as exported_folder,
    open_backbone as open_backbone,
    restore_onnx as restore_onnx,
)
