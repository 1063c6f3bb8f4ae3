rule specification:
    output:
        f"{RESULTS}/runs/{{run}}/spec.json",
    log:
        f"logs/{EDITION}/specification/{{run}}.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        text=lambda wildcards: json_text(STUDY.runs[wildcards.run]),
    message:
        "Specification of run {wildcards.run}"
    script:
        "../scripts/write_text.py"


rule fit:
    input:
        spec=f"{RESULTS}/runs/{{run}}/spec.json",
        data=run_data,
    output:
        per_query=f"{RESULTS}/runs/{{run}}/per_query.parquet",
        history=f"{RESULTS}/runs/{{run}}/history.csv",
        fits=f"{RESULTS}/runs/{{run}}/fits.csv",
        record=f"{RESULTS}/runs/{{run}}/run.json",
    log:
        f"logs/{EDITION}/fit/{{run}}.log",
    benchmark:
        f"logs/{EDITION}/fit/{{run}}.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    threads: STUDY.config["fit_threads"]
    resources:
        mem_mb=run_memory,
        runtime=240,
        gpu=1 if STUDY.config["device"] == "cuda" else 0,
    params:
        data=subpath(input.data, parent=True),
        out=subpath(output.record, parent=True),
        device=STUDY.config["device"],
        code=run_code,
        python=PYTHON,
    message:
        "Training {wildcards.run}"
    shell:
        "{params.python} -m directrank fit {input.spec:q} --data {params.data:q} --out {params.out:q}"
        " --threads {threads} --device {params.device} > {log:q} 2>&1"
