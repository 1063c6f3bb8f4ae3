# The workflow itself is in workflow/: this file lets `snakemake` run from the repository's root.
include: "workflow/Snakefile"
