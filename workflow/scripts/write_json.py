"""Write the parameter ``content`` as JSON: how the plan reaches the files that jobs read."""

from directrank.io import write_json

write_json(snakemake.output[0], snakemake.params.content)  # noqa: F821
