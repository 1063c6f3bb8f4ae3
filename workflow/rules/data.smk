# Data sets with and without folds consist of different files, so each set of splits has a rule.
for _splits, _keys in STUDY.keys_by_splits().items():

    rule:
        name:
            "prepare" if len(_splits) == 3 else f"prepare_{len(_splits) // 3}_folds"
        output:
            edition.store_files("{key}"),
            settings="data/prepared/{key}.settings.json",
            splits=edition.split_files("{key}", _splits),
        log:
            "logs/prepare/{key}.log",
            usage="logs/prepare/{key}.benchmark.tsv",
        wildcard_constraints:
            key=edition.choice(_keys),
        priority: edition.PREPARING
        # Without a shared file system, the archives may exist only where the workflow was started.
        localrule: not STUDY.files_are_shared
        conda:
            "../../envs/study.yaml"
        resources:
            mem_mb=2000,
            runtime=60,
        params:
            name=STUDY.data_name,
            settings=STUDY.data_settings,
            out=subpath(output[0], parent=True),
            code=STUDY.data_code,
            entry=STUDY.data_entry,
        message:
            "Preparing data set {params.name}"
        # The raw folder is an environment variable and not a parameter, so that moving the archives
        # does not cause data to be prepared again.
        shell:
            "printf %s {params.settings:q} > {output.settings:q}; : > {log.usage:q}; "
            '"$PYTHON" -m directrank --usage {log.usage:q} prepare {params.name:q}'
            " --settings {output.settings:q} --out {params.out:q} --threads {threads}"
            " > {log[0]:q} 2>&1"


rule data_pages:
    input:
        STUDY.all_data_files(),
    output:
        STUDY.data_page_files(),
    log:
        f"logs/{EDITION}/data_pages.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        folders=edition.data_folders,
        out=subpath(output[0], parent=True),
        code=edition.code("directrank.data.pages"),
    message:
        "Writing the pages of the data sets"
    shell:
        '"$PYTHON" -m directrank data page {params.folders:q} --out {params.out:q}'
        " > {log:q} 2>&1"
