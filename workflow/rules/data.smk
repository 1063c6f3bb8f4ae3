rule data_settings:
    message:
        "Settings of data set {wildcards.key}"
    output:
        "data/prepared/{key}.settings.json",
    log:
        "logs/data_settings/{key}.log",
    params:
        content=lambda wildcards: dict(data_source(wildcards).settings),
    resources:
        mem_mb=200,
        runtime=5,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/write_json.py"


rule prepare:
    message:
        "Preparing data set {params.name}"
    input:
        settings="data/prepared/{key}.settings.json",
    output:
        record="data/prepared/{key}/prepared.json",
    log:
        "logs/prepare/{key}.log",
    benchmark:
        "logs/prepare/{key}.benchmark.tsv"
    params:
        name=lambda wildcards: data_source(wildcards).name,
        out=subpath(output.record, parent=True),
        raw=RAW,
        code=data_code,
    threads: 2
    resources:
        mem_mb=2000,
        runtime=60,
    conda:
        "../../envs/study.yaml"
    shell:
        "{PYTHON} -m directrank prepare {params.name:q} --raw {params.raw:q}"
        " --settings {input.settings:q} --out {params.out:q} > {log:q} 2>&1"
