"""Check that Spark is installed, for commands that need it, before they do anything else."""

from __future__ import annotations

import typer

from fairlead_kafka.cli.exit_codes import WRONG_COMMAND_LINE_EXIT_CODE
from fairlead_kafka.cli.terminal import errors


def need_spark() -> None:
    """Exit with one line and code 2 if a package that Spark's pipelines need is not installed, or
    Spark is too old for them."""
    from fairlead_kafka.spark.starting import PIPELINE_PACKAGES, SparkMissing, ensure_installed
    from fairlead_kafka.spark.versions import Feature, SparkUnsupported, refuse

    try:
        ensure_installed(PIPELINE_PACKAGES)
        refuse("fairlead pipeline", Feature.PIPELINES)
    except (SparkMissing, SparkUnsupported) as error:
        errors.print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(WRONG_COMMAND_LINE_EXIT_CODE) from None
