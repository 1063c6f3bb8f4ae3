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


# Data sets with folds leave other files than those without: one rule for each number of folds.
for _splits, _keys in split_shapes().items():

    rule:
        name:
            "prepare" if len(_splits) == 3 else f"prepare_{len(_splits) // 3}_folds"
        input:
            settings="data/prepared/{key}.settings.json",
        output:
            store_files("{key}"),
            splits=split_files("{key}", _splits),
        log:
            "logs/prepare/{key}.log",
        benchmark:
            "logs/prepare/{key}.benchmark.tsv"
        wildcard_constraints:
            key=_choice(_keys),
        # The archives lie where the workflow was started; only there can they be counted on.
        localrule: not FILES_ARE_SHARED
        conda:
            "../../envs/study.yaml"
        threads: 2
        resources:
            mem_mb=2000,
            runtime=60,
        params:
            name=lambda wildcards: data_source(wildcards).name,
            out=lambda wildcards, output: str(Path(output[0]).parent),
            code=data_code,
            entry=data_entry,
            python=PYTHON,
        message:
            "Preparing data set {params.name}"
        # The raw folder comes from DIRECTRANK_RAW (see common.smk) and is no parameter: archives
        # that were moved are no reason to prepare again.
        shell:
            "{params.python} -m directrank prepare {params.name:q}"
            " --settings {input.settings:q} --out {params.out:q} > {log:q} 2>&1"


rule data_pages:
    input:
        [name for key in sorted(STUDY.data) for name in data_files(key)],
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
        folders=lambda wildcards, input: folders_of_data(input),
        out=lambda wildcards, output: str(Path(output[0]).parent),
        code=provenance.code_digest(["directrank.data.pages"]),
        python=PYTHON,
    message:
        "Pages of the data sets"
    shell:
        "{params.python} -m directrank data page {params.folders:q} --out {params.out:q}"
        " > {log:q} 2>&1"
