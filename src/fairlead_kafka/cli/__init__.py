"""The command line: `fairlead up | topics | groups | produce | consume | perf | skew | pipeline |
lab | demo | simulate`.

`main` is the entry point and light: it imports `application` late, so that Ctrl-C works from the
start, and turns SIGTERM into an exception, so that clean-up code runs. `application` puts the
commands together, importing only the one that is called, and prints every expected error in one
line on standard error; exit codes are 0, 1 for such an error, 2 for an invalid command line, 130
for Ctrl-C, 143 for SIGTERM. Each other module holds the commands of one noun. `connecting` opens
their clients: a cluster that does not answer is reported within seconds, and Ctrl-C never waits for
it.

Everything that works for more than a second shows progress on standard error; results go to
standard output, never cut or wrapped where there is no terminal, and every report has `--json FILE`
(`-` for standard output), refused before the work starts if it cannot be written.
"""
