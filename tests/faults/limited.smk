# The workflow with a limit on the address space of a fit: its libraries fit in, its training does not.
include: "../../Snakefile"


for each in workflow.rules:
    if each.name == "fit":
        each.params.python = f"prlimit --as={1100 * 2**20} {PYTHON}"
