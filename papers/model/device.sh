#!/bin/bash
# Trains the larger model on a machine with an accelerator that holds nothing but torch.
#
# Here:   bash papers/model/device.sh prepare ROWS CHECKPOINT PLAIN_CHECKPOINT   (writes runs/device, ignored by git)
# There:  one call for each folder runs/device/backbone-N, carried:  bash papers/model/device.sh take
#         a last one with runs/device/packed carried:                bash papers/model/device.sh train
# Back:   cat WEIGHTS/part-* > weights.npz && python -m papers.model.parts restore weights.npz MODEL --base CHECKPOINT
#
# A call carries at most 64 MiB with the repository, and at most 64 MiB in files of 16 come back: the
# backbone goes in parts, and only the layers that were trained return, as int8.
set -euo pipefail
FOLDER=runs/device
THERE=${THERE:-${TMPDIR:-$HOME}/condsim-device}
FROZEN=6

case $1 in
prepare)
  python -m papers.model.parts quantize "$3" "$FOLDER/backbone.npz"
  python -m papers.model.pack --rows "$2" --model "$3" --plain-model "$4" --out "$FOLDER/packed" --no-vectors
  split -b 24m -d "$FOLDER/backbone.npz" "$FOLDER/part-"
  number=0
  for part in "$FOLDER"/part-*; do
    mkdir -p "$FOLDER/backbone-$number"
    mv "$part" "$FOLDER/backbone-$number/"
    number=$((number + 1))
  done
  ;;
take)
  mkdir -p "$THERE/parts"
  cp "$FOLDER"/backbone-*/* "$THERE/parts/"
  ;;
train)
  # A copy of this package alone: the package around it needs more than torch.
  mkdir -p "$THERE/code/papers"
  cp -r papers/model "$THERE/code/papers/"
  export PYTHONPATH=$THERE/code
  cat "$THERE"/parts/part-* > "$THERE/backbone.npz"
  python -m papers.model.parts restore "$THERE/backbone.npz" "$THERE/start"
  timeout "${SECONDS_TO_TRAIN:-480}" python -m papers.model.train --settings papers/model/settings/large-device.yaml \
    --packed "$FOLDER/packed" --start "$THERE/start" --out "$THERE/run" || true
  python -m papers.model.parts quantize "$THERE/run" "$THERE/weights.npz" --from-layer $FROZEN
  mkdir -p "$OUT/weights"
  split -b 15m -d "$THERE/weights.npz" "$OUT/weights/part-"
  cp "$THERE/run/log.jsonl" "$OUT/"
  ;;
esac
