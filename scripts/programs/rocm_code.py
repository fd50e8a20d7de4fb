"""Print a table of models: what the rTask functions that are planned for a GPU of NVIDIA's are on AMD GPUs."""

import argparse
from collections import Counter

from tvm_rammer import relay_passes
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.regions import plan_regions
from tvm_rammer.compilation.stages import find_kernels
from tvm_rammer.device import preset
from tvm_rammer.errors import CodegenError, first_line
from tvm_rammer.persistent_codegen.rocm import rocm_code
from tvm_rammer.zoo.models import MODELS, model_names

HEAD = """| model | architecture | threads of a wave | rTask functions | refused | registers | spilled | shared KB |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Read the command line, plan, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=model_names, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--target", default="cuda:h200", help="for which GPU the kernels are chosen (cuda:h200)")
    parser.add_argument("--arch", default="gfx90a,gfx1100", help="AMD's architectures, by commas (gfx90a,gfx1100)")
    options = parser.parse_args()
    print(HEAD)
    reasons: Counter[str] = Counter()
    for model in options.models:
        record = Compilation(preset(options.target))
        module = plan_regions(find_kernels(relay_passes.load_model(MODELS[model]()), record), record)
        used = {kernel.name for program in record.programs for kernel in program.kernels}
        kernels = [k for made in module.kernels.values() for k in made if k.spec.name in used]
        for arch in options.arch.split(","):
            made = []
            for kernel in kernels:
                try:
                    made.append(rocm_code(kernel, arch))
                except CodegenError as error:
                    reasons[first_line(error).removeprefix(f"{kernel.spec.name} ")] += 1
            registers = max((code.registers for code in made), default=0)
            shared = max((code.shared_bytes for code in made), default=0) / 1024
            waves = ", ".join(str(wave) for wave in sorted({code.wave for code in made}))
            spilled = sum(code.spilled for code in made)
            print(
                f"| {model} | {arch} | {waves} | {len(made)} | {len(kernels) - len(made)} | {registers} | {spilled} "
                f"| {shared:.0f} |",
                flush=True,
            )
    for reason, count in reasons.items():
        print(f"\n{count} refused: {reason}")


if __name__ == "__main__":
    main()
