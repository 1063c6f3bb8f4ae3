# The workflow with less address space for a fit than its libraries need. A little more, and OpenBLAS
# tries for ever to get what it is refused.
include: "../../Snakefile"


# A fit alone is started with exec: 600 MiB.
shell.prefix(
    STUDY.shell_prefix(sys.executable) + 'exec() {{ prlimit --as=629145600 "$@"; }}; '
)
