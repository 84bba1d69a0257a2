#!/bin/bash
# Trains the larger model on a machine with an accelerator that holds nothing but torch.
#
# Here:   bash papers/model/device.sh prepare ROWS CHECKPOINT PLAIN_CHECKPOINT   (writes runs/device, ignored by git)
# There:  one call for each folder runs/device/backbone-N, carried:  bash papers/model/device.sh take
#         a last one with runs/device/packed carried:                bash papers/model/device.sh train
# Back:   python -m papers.model.parts join WEIGHTS MODEL --base CHECKPOINT
#
# A call carries at most 64 MiB with the repository, and at most 64 MiB in files of 16 come back: the
# backbone goes in parts, and only the layers that were trained return, as int8.
set -euo pipefail
FOLDER=runs/device
THERE=${THERE:-${TMPDIR:-$HOME}/condsim-device}
FROZEN=6

case $1 in
prepare)
  python -m papers.model.parts split "$3" "$FOLDER/parts" --megabytes 24
  python -m papers.model.pack --rows "$2" --model "$3" --plain-model "$4" --out "$FOLDER/packed" --no-vectors
  number=0
  for part in "$FOLDER"/parts/part-*.npz; do
    mkdir -p "$FOLDER/backbone-$number"
    mv "$part" "$FOLDER/backbone-$number/"
    cp "$FOLDER"/parts/*.json "$FOLDER/backbone-$number/"
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
  python -m papers.model.parts join "$THERE/parts" "$THERE/start"
  timeout "${SECONDS_TO_TRAIN:-480}" python -m papers.model.train --settings papers/model/settings/large-device.yaml \
    --packed "$FOLDER/packed" --start "$THERE/start" --out "$THERE/run" || true
  python -m papers.model.parts split "$THERE/run" "$OUT/weights" --megabytes 15 --from-layer $FROZEN
  cp "$THERE/run/log.jsonl" "$OUT/"
  ;;
esac
