"""The command line: `fairlead up | topics | produce | consume | perf | demo | lab`.

`main` holds the application and turns the errors that Fairlead raises on purpose into one line on standard error and exit code 1;
each other module holds the commands of one noun. Everything that works for more than a second shows progress on standard error;
results go to standard output, and every report has `--json FILE` (`-` for standard output).
"""
