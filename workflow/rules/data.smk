rule data_settings:
    output:
        "data/prepared/{key}.settings.json",
    log:
        "logs/data_settings/{key}.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        text=lambda wildcards: json_text(data_source(wildcards).settings),
    message:
        "Settings of data set {wildcards.key}"
    script:
        "../scripts/write_text.py"


rule prepare:
    input:
        settings="data/prepared/{key}.settings.json",
    output:
        record="data/prepared/{key}/prepared.json",
    log:
        "logs/prepare/{key}.log",
    benchmark:
        "logs/prepare/{key}.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        name=lambda wildcards: data_source(wildcards).name,
        out=subpath(output.record, parent=True),
        code=data_code,
        entry=data_entry,
        python=PYTHON,
    message:
        "Preparing data set {params.name}"
    # The raw folder comes from DIRECTRANK_RAW (see common.smk) and is no parameter: archives that
    # were moved are no reason to prepare again.
    shell:
        "{params.python} -m directrank prepare {params.name:q}"
        " --settings {input.settings:q} --out {params.out:q} > {log:q} 2>&1"


rule data_pages:
    input:
        records=data_records(),
    output:
        data_page_files(),
    log:
        f"logs/{EDITION}/data_pages.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        folders=lambda wildcards, input: [
            str(Path(name).parent) for name in input.records
        ],
        out=lambda wildcards, output: str(Path(output[0]).parent),
        code=provenance.code_digest(["directrank.data.pages"]),
        python=PYTHON,
    message:
        "Pages of the data sets"
    shell:
        "{params.python} -m directrank data page {params.folders:q} --out {params.out:q}"
        " > {log:q} 2>&1"
