"""What the exit codes of the commands mean."""

SUCCESS = 0
FAILURE = 1
USAGE = 2
MISSING_DEPENDENCY = 3
NOT_CONFIGURED = 4
NOT_FOUND = 5
REFUSED = 6
NO_CONNECTION = 7
TIMED_OUT = 8
SERVER_FAILED = 9
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
TERMINATED = 143  # 128 + SIGTERM

EPILOG = """\
exit codes:
  0    everything was done (what was skipped as asked counts as done)
  1    at least one input failed, or the reader of the output went away
  2    the command line is wrong; nothing was done
  3    a part of this installation is missing; 'polymux doctor' says which
  4    no server is named, or the configuration is wrong; nothing was done
  5    the input, song, job or file does not exist (a server's status 404, too)
  6    the server refuses the request or the key (other statuses from 400 to 499)
  7    there is no connection to the server, or it broke off
  8    a deadline passed
  9    the server or its job failed, or cannot do this (status 500 and above)
  130  interrupted by Ctrl-C; nothing partial is left behind
  143  ended by SIGTERM; nothing partial is left behind
"""
