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
        text=product_plan,
    message:
        "What {wildcards.product} of {wildcards.paper} is made of"
    script:
        "../scripts/write_text.py"


rule figure:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/{{product}}.json",
        results=product_runs,
        data=product_data,
        published=published_values,
    output:
        png=report(
            f"figures/{EDITION}/{{paper}}/{{product}}.png",
            caption="../report/figure.rst",
            category="{paper}",
            subcategory="figures",
            labels={"figure": "{product}", "form": "png"},
        ),
        pdf=f"figures/{EDITION}/{{paper}}/{{product}}.pdf",
        svg=f"figures/{EDITION}/{{paper}}/{{product}}.svg",
        csv=report(
            f"figures/{EDITION}/{{paper}}/{{product}}.csv",
            caption="../report/figure.rst",
            category="{paper}",
            subcategory="figures",
            labels={"figure": "{product}", "form": "numbers"},
        ),
    log:
        f"logs/{EDITION}/figure/{{paper}}/{{product}}.log",
    benchmark:
        f"logs/{EDITION}/figure/{{paper}}/{{product}}.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=PYTHON,
        results=subpath(input.plan, ancestor=3),
        prepared=prepared_folder,
        code=paper_code,
    message:
        "{wildcards.product} of {wildcards.paper}"
    shell:
        "{params.python} -m directrank product {input.plan:q} --results {params.results:q}"
        " --prepared {params.prepared:q}"
        " --out {output.png:q} > {log:q} 2>&1"


rule table:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/{{product}}.json",
        results=product_runs,
        data=product_data,
        published=published_values,
    output:
        csv=f"paper_tables/{EDITION}/{{paper}}/{{product}}.csv",
        md=f"paper_tables/{EDITION}/{{paper}}/{{product}}.md",
        tex=f"paper_tables/{EDITION}/{{paper}}/{{product}}.tex",
    log:
        f"logs/{EDITION}/table/{{paper}}/{{product}}.log",
    benchmark:
        f"logs/{EDITION}/table/{{paper}}/{{product}}.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=PYTHON,
        results=subpath(input.plan, ancestor=3),
        prepared=prepared_folder,
        code=paper_code,
    message:
        "{wildcards.product} of {wildcards.paper}"
    shell:
        "{params.python} -m directrank product {input.plan:q} --results {params.results:q}"
        " --prepared {params.prepared:q}"
        " --out {output.csv:q} > {log:q} 2>&1"


rule times:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/{{product}}.json",
        results=product_runs,
        data=product_data,
        published=published_values,
    output:
        f"{{top}}/{EDITION}/{{paper}}/{{product}}{papers.TIMES}",
    log:
        f"logs/{EDITION}/times/{{top}}/{{paper}}/{{product}}.log",
    wildcard_constraints:
        top="figures|paper_tables",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        python=PYTHON,
        results=subpath(input.plan, ancestor=3),
        prepared=prepared_folder,
        code=paper_code,
    message:
        "Measured times of {wildcards.product} of {wildcards.paper}"
    shell:
        "{params.python} -m directrank product {input.plan:q} --results {params.results:q}"
        " --prepared {params.prepared:q}"
        " --times --out {output:q} > {log:q} 2>&1"


rule gallery:
    input:
        figure_svgs(),
    output:
        f"figures/{EDITION}/README.md",
    log:
        f"logs/{EDITION}/gallery.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        code=provenance.code_digest(["directrank.papers.shared.gallery"]),
        python=PYTHON,
    message:
        "The page of figures"
    shell:
        "{params.python} -m directrank gallery {input:q} --out {output:q} > {log:q} 2>&1"


rule claims:
    input:
        plans=plan_files(),
        results=run_files(STUDY.runs),
        published=published_claims(),
    output:
        csv=report(
            f"paper_tables/{EDITION}/claims.csv",
            caption="../report/claims.rst",
            category="claims",
            labels={"form": "verdicts"},
        ),
        md=f"paper_tables/{EDITION}/claims.md",
        times=f"paper_tables/{EDITION}/claims_times.csv",
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
        code=claims_code(),
    message:
        "Verdicts on the papers' claims"
    shell:
        "{params.python} -m directrank claims {input.plans:q} --results {params.results:q}"
        " --out {output.csv:q} > {log:q} 2>&1"


rule report_page:
    input:
        plans=plan_files(),
        results=run_files(STUDY.runs),
        figures=figure_svgs(),
        tables=[name for name in product_files("table") if name.endswith(".md")],
        claims=f"paper_tables/{EDITION}/claims.csv",
        claims_times=f"paper_tables/{EDITION}/claims_times.csv",
        templates=report_templates(),
    output:
        f"report/{EDITION}/report.html",
    log:
        f"logs/{EDITION}/report.log",
    benchmark:
        f"logs/{EDITION}/report.benchmark.tsv"
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        python=PYTHON,
        results=lambda wildcards, input: str(Path(input.plans[0]).parents[2]),
        tables=subpath(input.claims, parent=True),
        figures=figures_folder,
        code=provenance.code_digest(["directrank.report.build"]),
    message:
        "The report of this edition"
    shell:
        "{params.python} -m directrank report {input.plans:q} --results {params.results:q}"
        " --figures {params.figures:q} --tables {params.tables:q} --out {output:q} > {log:q} 2>&1"
