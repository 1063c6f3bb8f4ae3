# The workflow with less address space for a fit than its libraries need. A little more, and OpenBLAS
# tries for ever to get what it is refused.
include: "../../Snakefile"


for each in workflow.rules:
    if each.name == "fit":
        each.shellcmd = each.shellcmd.replace("exec", f"exec prlimit --as={600 * 2**20}", 1)
