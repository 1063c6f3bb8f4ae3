"""Write the parameter ``text``: how the plan reaches the files that jobs read."""

from directrank.system.io import write_text

write_text(snakemake.output[0], snakemake.params.text)  # noqa: F821
