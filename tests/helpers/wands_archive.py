"""A small collection in the form of WANDS' files."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

PRODUCT = (
    *("product_id", "product_name", "product_class", "category hierarchy", "product_description"),
    *("product_features", "rating_count", "average_rating", "review_count"),
)
PRODUCTS = [
    (
        *("0", "solid wood platform bed", "Beds", "Furniture / Bedroom Furniture / Beds"),
        *('a bed of pine , 64" wide', "material:pine|color : brown", "15.0", "4.5", "15.0"),
    ),
    (
        *("1", "tufted bed", "Beds", "Furniture / Bedroom Furniture / Beds"),
        *("a bed\nof velvet", "material:velvet|color:blue", "3.0", "3.0", ""),
    ),
    (
        *("2", "leather armchair", "Accent Chairs|Recliners", "Furniture / Chairs"),
        *("", "material:leather|color:brown", "", "", ""),
    ),
    (
        *("3", "velvet accent chair", "Accent Chairs", "Furniture / Chairs"),
        *("a chair for the living room", "material:velvet|color:blue|legs", "7.0", "5.0", "2.0"),
    ),
    (
        *("4", "slow cooker", "Slow Cookers", "Kitchen / Small Kitchen Appliances"),
        *("cooks slowly", "capacityquarts:7", "100.0", "2.0", "98.0"),
    ),
    ("5", "wall art", "", "", "", "", "0.0", "0.0", "0.0"),
]
QUERIES = [
    ("4", "blue velvet bed", "Beds"),
    ("0", "platform beds", "Beds"),
    ("7", "leather chair", "Accent Chairs"),
    ("9", '64" wide', ""),
    ("12", "7 qt slow cooker", "Slow Cookers"),
    ("13", "accent chair", "Accent Chairs"),
    ("20", "picasso", "Wall Art"),
    ("21", "brown", ""),
]
LABELS = [
    *(("4", "0", "Partial"), ("4", "1", "Exact"), ("4", "3", "Partial"), ("4", "5", "Irrelevant")),
    *(("0", "0", "Exact"), ("0", "1", "Partial"), ("0", "4", "Irrelevant")),
    *(("7", "2", "Exact"), ("7", "3", "Partial"), ("7", "5", "Irrelevant")),
    *(("9", "0", "Exact"), ("9", "4", "Irrelevant")),
    *(("12", "4", "Exact"), ("12", "5", "Irrelevant")),
    *(("13", "3", "Exact"), ("13", "2", "Partial"), ("13", "0", "Irrelevant")),
    *(("20", "5", "Partial"), ("20", "2", "Irrelevant")),
    *(("21", "2", "Exact"), ("21", "1", "Irrelevant")),
]


def contents(
    products: Sequence[Sequence[str]] = PRODUCTS,
    queries: Sequence[Sequence[str]] = QUERIES,
    labels: Sequence[Sequence[str]] = LABELS,
) -> dict[str, bytes]:
    """The files by name, as pandas writes them."""
    numbered = [(str(number), *row) for number, row in enumerate(labels)]
    tables = {
        "product.csv": [PRODUCT, *products],
        "query.csv": [("query_id", "query", "query_class"), *queries],
        "label.csv": [("id", "query_id", "product_id", "label"), *numbered],
    }
    files = {}
    for name, rows in tables.items():
        text = io.StringIO()
        csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
        files[name] = text.getvalue().encode()
    return files


def write(path: Path, **tables: Sequence[Sequence[str]]) -> Path:
    """Write the archive of the files that :func:`contents` makes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents(**tables).items():
            archive.writestr(f"WANDS/dataset/{name}", content)
    return path
