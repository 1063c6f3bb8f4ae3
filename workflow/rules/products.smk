rule plan:
    output:
        f"{RESULTS}/plan/{{paper}}/{{product}}.json",
    log:
        f"logs/{EDITION}/plan/{{paper}}/{{product}}.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=product_plan,
    message:
        "What {wildcards.product} of {wildcards.paper} is made of"
    script:
        "../scripts/write_json.py"


rule figure:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/figure{{number}}.json",
        results=product_runs("figure"),
    output:
        png=report(
            f"figures/{EDITION}/{{paper}}/figure{{number}}.png",
            caption="../report/figure.rst",
            category="{paper}",
            subcategory="figures",
            labels={"figure": "{number}", "form": "png"},
        ),
        pdf=f"figures/{EDITION}/{{paper}}/figure{{number}}.pdf",
        svg=f"figures/{EDITION}/{{paper}}/figure{{number}}.svg",
        csv=report(
            f"figures/{EDITION}/{{paper}}/figure{{number}}.csv",
            caption="../report/figure.rst",
            category="{paper}",
            subcategory="figures",
            labels={"figure": "{number}", "form": "numbers"},
        ),
    log:
        f"logs/{EDITION}/figure/{{paper}}/{{number}}.log",
    benchmark:
        f"logs/{EDITION}/figure/{{paper}}/{{number}}.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=PYTHON,
        results=subpath(input.plan, ancestor=3),
        code=paper_code,
    message:
        "Figure {wildcards.number} of {wildcards.paper}"
    shell:
        "{params.python} -m directrank product {input.plan:q} --results {params.results:q}"
        " --out {output.png:q} > {log:q} 2>&1"


rule table:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/table{{number}}.json",
        results=product_runs("table"),
    output:
        csv=f"paper_tables/{EDITION}/{{paper}}/table{{number}}.csv",
        md=f"paper_tables/{EDITION}/{{paper}}/table{{number}}.md",
        tex=f"paper_tables/{EDITION}/{{paper}}/table{{number}}.tex",
    log:
        f"logs/{EDITION}/table/{{paper}}/{{number}}.log",
    benchmark:
        f"logs/{EDITION}/table/{{paper}}/{{number}}.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=PYTHON,
        results=subpath(input.plan, ancestor=3),
        code=paper_code,
    message:
        "Table {wildcards.number} of {wildcards.paper}"
    shell:
        "{params.python} -m directrank product {input.plan:q} --results {params.results:q}"
        " --out {output.csv:q} > {log:q} 2>&1"


rule claims:
    input:
        plans=plan_files(),
        results=run_records(),
    output:
        csv=report(
            f"paper_tables/{EDITION}/claims.csv",
            caption="../report/claims.rst",
            category="claims",
            labels={"form": "verdicts"},
        ),
        md=f"paper_tables/{EDITION}/claims.md",
    log:
        f"logs/{EDITION}/claims.log",
    benchmark:
        f"logs/{EDITION}/claims.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=PYTHON,
        results=lambda wildcards, input: str(Path(input.plans[0]).parents[2]),
        code=provenance.code_digest(["directrank.papers.claims"]),
    message:
        "Verdicts on the papers' claims"
    shell:
        "{params.python} -m directrank claims {input.plans:q} --results {params.results:q}"
        " --out {output.csv:q} > {log:q} 2>&1"
