"""What the exit codes of the commands mean."""

SUCCESS = 0
FAILURE = 1
USAGE = 2
MISSING_DEPENDENCY = 3
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
TERMINATED = 143  # 128 + SIGTERM

EPILOG = """\
exit codes:
  0    everything was done (what was skipped as asked counts as done)
  1    at least one input failed, or the reader of the output went away
  2    the command line is wrong; nothing was done
  3    a part of this installation is missing; 'polymux doctor' says which
  130  interrupted by Ctrl-C; nothing partial is left behind
  143  ended by SIGTERM; nothing partial is left behind
"""
