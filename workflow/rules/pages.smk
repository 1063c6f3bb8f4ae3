# Pages that show tables, or what follows from them. They need no runs.


rule tables_page:
    input:
        STUDY.product_files("table", ".md"),
    output:
        f"paper_tables/{EDITION}/README.md",
    log:
        f"logs/{EDITION}/tables_page.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        claims="--claims" if STUDY.claims_files() else "",
        figures="--figures" if STUDY.gallery_files() else "",
        code=edition.code("directrank.papers.shared.pages"),
    message:
        "Writing the page of tables"
    shell:
        '"$PYTHON" -m directrank page tables {input:q} --out {output:q}'
        " {params.claims} {params.figures} > {log:q} 2>&1"


rule captions:
    input:
        STUDY.product_files("figure", ".svg"),
        STUDY.product_files("table", ".md"),
    output:
        STUDY.caption_files(),
    log:
        f"logs/{EDITION}/captions.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        out=subpath(output[0], ancestor=2),
        code=edition.code("directrank.papers.shared.pages"),
    message:
        "Writing the captions of Snakemake's report"
    shell:
        '"$PYTHON" -m directrank page captions {input:q} --out {params.out:q} > {log:q} 2>&1'


rule numbers_page:
    input:
        csv=STUDY.tables_of_one_protocol(".csv"),
        md=STUDY.tables_of_one_protocol(".md"),
    output:
        f"paper_tables/{EDITION}/one_protocol/README.md",
    log:
        f"logs/{EDITION}/numbers_page.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        code=edition.code("directrank.papers.one_protocol.numbers_page"),
    message:
        "Writing the page with all numbers of one protocol"
    shell:
        '"$PYTHON" -m directrank page numbers {input.md:q} --out {output:q} > {log:q} 2>&1'


rule compared:
    output:
        f"paper_tables/{EDITION}/one_protocol/compared.json",
    log:
        f"logs/{EDITION}/compared.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        texts=[STUDY.compared()],
    message:
        "Writing which collections and losses one protocol compares"
    script:
        "../scripts/write_texts.py"


rule which_loss:
    input:
        compared=rules.compared.output,
        values=STUDY.product_files("values"),
        settings=STUDY.tables_of_one_protocol("_settings.csv"),
        times=STUDY.training_times(),
        sizes=STUDY.training_sizes(),
    output:
        page=f"paper_tables/{EDITION}/which_loss.md",
        losses=f"paper_tables/{EDITION}/losses.md",
    log:
        f"logs/{EDITION}/which_loss.log",
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        code=lambda wildcards: edition.which_loss_code(),
        sizes=edition.sizes_option,
        times=edition.times_option,
    message:
        "Writing which loss to take"
    shell:
        '"$PYTHON" -m directrank page losses {input.compared:q} --out {output.page:q} {params.sizes}'
        " {params.times} > {log:q} 2>&1"


rule manifest:
    input:
        plans=STUDY.plan_files(),
        results=STUDY.all_run_files(),
        figures=STUDY.product_files("figure", ".csv"),
        tables=STUDY.product_files("table", ".csv"),
        values=STUDY.product_files("values"),
    output:
        f"paper_tables/{EDITION}/manifest.json",
    log:
        f"logs/{EDITION}/manifest.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=10,
    params:
        results=edition.results_folder,
        figures=lambda wildcards, input: STUDY.figures_folder(input),
        tables=lambda wildcards, input: STUDY.tables_folder(input),
        code=edition.code("directrank.edition.manifest"),
    message:
        "Writing what made each product"
    shell:
        '"$PYTHON" -m directrank page manifest {input.plans:q} --results {params.results:q}'
        " --figures {params.figures:q} --tables {params.tables:q} --out {output:q}"
        " > {log:q} 2>&1"


rule leaderboard:
    input:
        compared=rules.compared.output,
        tables=STUDY.tables_of_one_protocol(".csv"),
    output:
        f"report/{EDITION}/leaderboard.html",
    log:
        f"logs/{EDITION}/leaderboard.log",
    localrule: True
    conda:
        "../../envs/study.yaml"
    resources:
        mem_mb=500,
        runtime=5,
    params:
        code=STUDY.report_code("directrank.report.leaderboard"),
    message:
        "Writing the leaderboard"
    shell:
        '"$PYTHON" -m directrank page leaderboard {input.compared:q} --out {output:q}'
        " > {log:q} 2>&1"
