# One job for each paper: a job for each product would take longer than writing its plan.
for _paper in STUDY.papers():

    rule:
        name:
            f"plans_{_paper}"
        output:
            STUDY.paper_plans(_paper),
        log:
            f"logs/{EDITION}/plans/{_paper}.log",
        localrule: True
        conda:
            "../../envs/study.yaml"
        resources:
            mem_mb=200,
            runtime=5,
        params:
            texts=STUDY.plan_texts(_paper),
        message:
            f"Writing what the figures and tables of {_paper} are made from"
        script:
            "../scripts/write_texts.py"


rule figure:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/{{product}}.json",
        results=STUDY.product_runs,
        data=STUDY.product_data,
        claims=STUDY.product_claims,
        values=STUDY.product_values,
    output:
        png=f"figures/{EDITION}/{{paper}}/{{product}}.png",
        pdf=f"figures/{EDITION}/{{paper}}/{{product}}.pdf",
        svg=f"figures/{EDITION}/{{paper}}/{{product}}.svg",
        csv=f"figures/{EDITION}/{{paper}}/{{product}}.csv",
    log:
        f"logs/{EDITION}/figure/{{paper}}/{{product}}.log",
        usage=f"logs/{EDITION}/figure/{{paper}}/{{product}}.benchmark.tsv",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        results=subpath(input.plan, ancestor=3),
        prepared=edition.prepared_folder,
        claims=edition.claims_option,
        values=edition.values_option,
        out=lambda wildcards, output: output[0],
        times="",
        code=STUDY.product_code,
    message:
        "Making {wildcards.product} of {wildcards.paper}"
    shell:
        ': > {log.usage:q}; "$PYTHON" -IS "$DIRECTRANK" --usage {log.usage:q}'
        " product {input.plan:q} --results {params.results:q} --prepared {params.prepared:q}"
        " {params.claims} {params.times} --out {params.out:q} {params.values} > {log[0]:q} 2>&1"


use rule figure as table with:
    output:
        csv=f"paper_tables/{EDITION}/{{paper}}/{{product}}.csv",
        md=f"paper_tables/{EDITION}/{{paper}}/{{product}}.md",
        tex=f"paper_tables/{EDITION}/{{paper}}/{{product}}.tex",
    log:
        f"logs/{EDITION}/table/{{paper}}/{{product}}.log",
        usage=f"logs/{EDITION}/table/{{paper}}/{{product}}.benchmark.tsv",


use rule figure as values with:
    output:
        f"paper_tables/{EDITION}/{{paper}}/{{product}}.parquet",
    log:
        f"logs/{EDITION}/values/{{paper}}/{{product}}.log",
        usage=f"logs/{EDITION}/values/{{paper}}/{{product}}.benchmark.tsv",


use rule figure as times with:
    input:
        plan=f"{RESULTS}/plan/{{paper}}/{{product}}.json",
        results=STUDY.product_runs,
        data=STUDY.product_data,
    output:
        csv=f"{{top}}/{EDITION}/{{paper}}/{{product}}{TIMES}",
    log:
        f"logs/{EDITION}/times/{{top}}/{{paper}}/{{product}}.log",
        usage=f"logs/{EDITION}/times/{{top}}/{{paper}}/{{product}}.benchmark.tsv",
    params:
        claims="",
        values="",
        times="--times",
    message:
        "Collecting the measured times of {wildcards.product} of {wildcards.paper}"


rule gallery:
    input:
        STUDY.product_files("figure", ".svg"),
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
        code=edition.code("directrank.papers.shared.gallery"),
    message:
        "Writing the page of figures"
    shell:
        '"$PYTHON" -IS "$DIRECTRANK" gallery {input:q} --out {output:q} > {log:q} 2>&1'


rule claims:
    input:
        plans=lambda wildcards: STUDY.paper_plans(wildcards.paper),
        results=STUDY.paper_runs,
    output:
        csv=f"paper_tables/{EDITION}/{{paper}}/claims.csv",
        times=f"paper_tables/{EDITION}/{{paper}}/claims{TIMES}",
    log:
        f"logs/{EDITION}/claims/{{paper}}.log",
        usage=f"logs/{EDITION}/claims/{{paper}}.benchmark.tsv",
    wildcard_constraints:
        paper=edition.choice(STUDY.papers_with_claims()),
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        results=edition.results_folder,
        margin=STUDY.config["margin"],
        code=STUDY.claims_code,
    message:
        "Testing the claims of {wildcards.paper}"
    shell:
        ': > {log.usage:q}; "$PYTHON" -IS "$DIRECTRANK" --usage {log.usage:q} claims measure {input.plans:q}'
        " --results {params.results:q} --margin {params.margin:q} --out {output.csv:q}"
        " > {log[0]:q} 2>&1"


rule claims_page:
    input:
        claims=STUDY.claims_of_papers(),
        times=STUDY.claims_of_papers(TIMES),
    output:
        csv=f"paper_tables/{EDITION}/claims.csv",
        md=f"paper_tables/{EDITION}/claims.md",
        times=f"paper_tables/{EDITION}/claims{TIMES}",
    log:
        f"logs/{EDITION}/claims_page.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        edition=EDITION,
        code=STUDY.page_code("directrank.papers.shared.claims_page"),
    message:
        "Merging the verdicts on the papers' claims"
    shell:
        '"$PYTHON" -IS "$DIRECTRANK" claims merge {input.claims:q} --edition {params.edition:q}'
        " --out {output.csv:q} > {log:q} 2>&1"


rule claims_by_collection:
    input:
        values=STUDY.product_files("values"),
        claims=f"paper_tables/{EDITION}/claims.csv",
        times=f"paper_tables/{EDITION}/claims{TIMES}",
    output:
        csv=f"paper_tables/{EDITION}/claims_by_collection.csv",
        md=f"paper_tables/{EDITION}/claims_by_collection.md",
    log:
        f"logs/{EDITION}/claims_by_collection.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        margin=STUDY.config["margin"],
        code=STUDY.page_code("directrank.papers.one_protocol.by_collection"),
    message:
        "Testing claims on every collection"
    shell:
        '"$PYTHON" -IS "$DIRECTRANK" claims collections {input.values:q} --claims {input.claims:q}'
        " --margin {params.margin:q} --out {output.csv:q} > {log:q} 2>&1"


rule report_page:
    input:
        plans=STUDY.plan_files(),
        results=STUDY.all_run_files(),
        figures=STUDY.product_files("figure", ".svg"),
        tables=STUDY.product_files("table", ".md"),
        claims=STUDY.claims_files(),
    output:
        f"report/{EDITION}/report.html",
    log:
        f"logs/{EDITION}/report.log",
        usage=f"logs/{EDITION}/report.benchmark.tsv",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        results=edition.results_folder,
        tables=STUDY.tables_folder,
        figures=STUDY.figures_folder,
        code=STUDY.report_code(),
    message:
        "Writing the report of this edition"
    shell:
        ': > {log.usage:q}; "$PYTHON" -IS "$DIRECTRANK" --usage {log.usage:q} report {input.plans:q}'
        " --results {params.results:q} --figures {params.figures:q} --tables {params.tables:q}"
        " --out {output:q} > {log[0]:q} 2>&1"
