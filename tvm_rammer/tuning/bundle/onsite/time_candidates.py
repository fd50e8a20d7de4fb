"""Check and time all candidates of this folder: `python3 time_candidates.py`, on a machine with an NVIDIA GPU."""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER / "lib"))

if __name__ == "__main__":
    from tvm_rammer.tuning.bundle.onsite.main import main

    sys.exit(main(FOLDER, __file__, sys.argv[1:]))
