# The workflow itself is in workflow/: this file lets `snakemake` run from the repository's root.
include: "workflow/Snakefile"


# An included rule is never the default target, so it is named again here.
rule everything:
    default_target: True
    input:
        rules.all.input,
    message:
        "Everything in this edition is up to date."
