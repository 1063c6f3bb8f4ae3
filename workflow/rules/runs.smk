# One job for each plan, which is made again if its own runs, or their code, have changed. If one job
# wrote all of them, Snakemake would take for granted that whatever reads one of them will run, and look
# at nothing else that has changed.
rule batch:
    output:
        f"{RESULTS}/batches/plan/{{batch}}.json",
    log:
        f"logs/{EDITION}/batches/{{batch}}.plan.log",
    wildcard_constraints:
        batch="[^/]+",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        texts=STUDY.batch_texts,
    message:
        "Listing the runs of {wildcards.batch}"
    script:
        "../scripts/write_texts.py"


# A single run that is longer than a batch has a rule of its own, with a priority.
for _rule, (_batches, _priority) in STUDY.fit_rules().items():

    rule:
        name:
            _rule
        input:
            plans=f"{RESULTS}/batches/plan/{{batch}}.json",
            data=STUDY.batch_data,
        output:
            **STUDY.batch_outputs(directory),
        log:
            **STUDY.batch_logs(),
        wildcard_constraints:
            batch=_batches,
        priority: _priority
        conda:
            "../../envs/study.yaml"
        threads: STUDY.batch_threads
        resources:
            mem_mb=lambda wildcards, attempt: attempt
            * STUDY.batch_at_once(wildcards)
            * max(
                requested_mb(STUDY.study, run, STUDY.batch_gpus(wildcards))
                for run in STUDY.batch(wildcards).runs
            ),
            runtime=240,
            gpu=STUDY.batch_gpus,
        params:
            runs=STUDY.batch_runs,
            data=edition.data_folders,
            results=edition.results_folder,
            record=edition.record_option,
            logs=edition.logs_folder,
            device=STUDY.config["device"],
            threads=STUDY.config["fit_threads"],
            at_once=STUDY.batch_at_once,
        message:
            "Training {wildcards.batch}"
        # With exec, a cluster's warning signal reaches the command, not a shell.
        shell:
            'exec "$PYTHON" -m directrank train {input.plans:q} --data {params.data:q}'
            " --results {params.results:q} --logs {params.logs:q}/fit {params.record}"
            " --threads {params.threads} --at-once {params.at_once} --device {params.device}"
            " --requeue > {log.batch:q} 2>&1"
