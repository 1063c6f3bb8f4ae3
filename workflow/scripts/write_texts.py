"""Write the parameter ``texts`` into the outputs: how the plans reach the files that jobs read."""

from directrank.system.io import write_text

for file, text in zip(snakemake.output, snakemake.params.texts, strict=True):  # noqa: F821
    write_text(file, text)
