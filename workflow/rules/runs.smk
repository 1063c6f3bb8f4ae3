rule fit:
    input:
        data=STUDY.run_data,
    output:
        spec=f"{RESULTS}/runs/{{run}}/spec.json",
        per_query=f"{RESULTS}/runs/{{run}}/per_query.parquet",
        history=f"{RESULTS}/runs/{{run}}/history.csv",
        fits=f"{RESULTS}/runs/{{run}}/fits.csv",
        record=f"{RESULTS}/runs/{{run}}/run.json",
        models=directory(f"{RESULTS}/runs/{{run}}/models"),
    log:
        f"logs/{EDITION}/fit/{{run}}.log",
        usage=f"logs/{EDITION}/fit/{{run}}.benchmark.tsv",
    # Fits of small data sets take seconds, so a cluster's profile submits several of them together.
    group:
        STUDY.run_group if STUDY.files_are_shared else None
    conda:
        "../../envs/study.yaml"
    threads: STUDY.config["fit_threads"]
    resources:
        mem_mb=lambda wildcards, attempt: (
            attempt
            * requested_mb(STUDY.study, wildcards.run, STUDY.run_gpus(wildcards))
        ),
        runtime=240,
        gpu=STUDY.run_gpus,
    params:
        spec=STUDY.specification_text,
        data=edition.data_folders,
        out=subpath(output.record, parent=True),
        device=STUDY.config["device"],
        code=STUDY.run_code,
    message:
        "Training {wildcards.run}"
    # The job itself writes the specification: a job of its own would take longer than writing it.
    # The log of the usage is created first, because Snakemake prints all logs of a failed job.
    # The command is run with exec, so that a cluster's warning signal reaches the fit, not a shell.
    shell:
        "printf %s {params.spec:q} > {output.spec:q}; : > {log.usage:q}; "
        'exec "$PYTHON" -IS "$DIRECTRANK" --usage {log.usage:q}'
        " fit {output.spec:q} --data {params.data:q} --out {params.out:q}"
        " --threads {threads} --device {params.device} --requeue > {log[0]:q} 2>&1"
