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


# One job for each part: imports take longer than drawing many a figure.
for _name, _part in STUDY.parts.items():

    rule:
        name:
            f"products_{_name}"
        input:
            plans=STUDY.part_plans(_part),
            results=STUDY.part_runs(_part),
            data=STUDY.part_data(_part),
            values=STUDY.part_values(_part),
        output:
            figures=[in_report(file) for file in STUDY.part_figures(_part)],
            tables=[in_report(file) for file in STUDY.part_tables(_part)],
        log:
            STUDY.part_logs(_name),
        priority: edition.DRAWING
        conda:
            "../../envs/study.yaml"
        resources:
            mem_mb=1000,
            runtime=60,
        params:
            results=edition.results_folder,
            prepared=edition.prepared_folder,
            figures=lambda wildcards, output: STUDY.figures_folder(output),
            tables=lambda wildcards, output: STUDY.tables_folder(output),
            logs=edition.logs_folder,
            margin=f"--margin {STUDY.config['margin']}" if _part.has_claims else "",
            values=edition.values_option,
            code=lambda wildcards, part=_part: STUDY.part_code(part),
        message:
            f"Making the products of {_name}"
        shell:
            '"$PYTHON" -m directrank draw {input.plans:q} --results {params.results:q}'
            " --prepared {params.prepared:q} --figures {params.figures:q}"
            " --tables {params.tables:q} --logs {params.logs:q} {params.margin} {params.values}"
            " > {log[0]:q} 2>&1"


rule gallery:
    input:
        STUDY.product_files("figure", ".svg"),
    output:
        f"figures/{EDITION}/README.md",
    log:
        f"logs/{EDITION}/gallery.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        code=edition.code("directrank.papers.shared.pages"),
    message:
        "Writing the page of figures"
    shell:
        '"$PYTHON" -m directrank gallery {input:q} --out {output:q} > {log:q} 2>&1'


rule claims_page:
    input:
        claims=STUDY.claims_of_papers(),
        times=STUDY.claims_of_papers(TIMES),
    output:
        csv=report(
            f"paper_tables/{EDITION}/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
            labels={"product": "claims", "title": "Verdicts on the papers' claims"},
        ),
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
        by_collection="--by-collection" if STUDY.claims_by_collection() else "",
        code=STUDY.page_code("directrank.papers.shared.claims_page"),
    message:
        "Merging the verdicts on the papers' claims"
    shell:
        '"$PYTHON" -m directrank claims merge {input.claims:q} --edition {params.edition:q}'
        " {params.by_collection} --out {output.csv:q} > {log:q} 2>&1"


rule overview:
    input:
        claims=f"paper_tables/{EDITION}/claims.csv",
        times=f"paper_tables/{EDITION}/claims{TIMES}",
    output:
        STUDY.overview_files(),
    log:
        f"logs/{EDITION}/overview.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        out=subpath(output[0], strip_suffix=".png"),
        code=STUDY.page_code("directrank.papers.shared.overview"),
    message:
        "Drawing all claims in one picture"
    shell:
        '"$PYTHON" -m directrank claims picture {input.claims:q} --out {params.out:q}'
        " > {log:q} 2>&1"


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
        '"$PYTHON" -m directrank claims collections {input.values:q} --claims {input.claims:q}'
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
        tables=lambda wildcards, input: STUDY.tables_folder(input),
        figures=lambda wildcards, input: STUDY.figures_folder(input),
        code=STUDY.report_code(),
    message:
        "Writing the report of this edition"
    shell:
        ': > {log.usage:q}; "$PYTHON" -m directrank --usage {log.usage:q} report {input.plans:q}'
        " --results {params.results:q} --figures {params.figures:q} --tables {params.tables:q}"
        " --out {output:q} > {log[0]:q} 2>&1"
