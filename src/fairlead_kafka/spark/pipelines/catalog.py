"""The catalog that keeps tables from one run to the next.

Spark's own catalog is in memory: a second run finds the folders of the first one's tables, but not
the tables, and fails with LOCATION_ALREADY_EXISTS. So a local run keeps its catalog (Hive's, in an
embedded Derby) and its tables beside its checkpoints. Settings of the specification take
precedence, and an existing server has a catalog of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CATALOG_KEY = "spark.sql.catalogImplementation"
WAREHOUSE_KEY = "spark.sql.warehouse.dir"
_CATALOG_FOLDER, _TABLES_FOLDER, _DERBY_LOG = "_catalog", "tables", "_derby.log"


def derby_log(storage: Path | None) -> str:
    """The option of the JVM that has Derby write its log into the storage, not into the folder that
    the run was started in."""
    return "" if storage is None else f'"-Dderby.stream.error.file={storage / _DERBY_LOG}"'


def kept_catalog(storage: Path | None, stores_tables: bool, given: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for a catalog that outlives the run. For a pipeline without tables, or one
    whose configuration says where to keep them, only the settings that keep the present folder
    clean. `storage` None: the storage is not on this machine, and its user has to name the catalog
    that belongs to it."""
    if storage is None:
        return {}
    warehouse = {
        WAREHOUSE_KEY: (storage / _TABLES_FOLDER).as_uri()
    }  # else spark-warehouse, in the folder that the run was started in
    if not stores_tables or CATALOG_KEY in given:
        return warehouse
    catalog = storage / _CATALOG_FOLDER
    return warehouse | {
        CATALOG_KEY: "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={catalog};create=true",
        # Hive would put folders of each user among the temporary files.
        "spark.hadoop.hive.exec.scratchdir": str(storage / "_scratch"),
        "spark.hadoop.hive.exec.local.scratchdir": str(storage / "_scratch"),
    }
