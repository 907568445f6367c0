"""What symbind-launch does.

Open MPI's mpirun starts the processes. Each of its ranks is a supervisor (`supervisor.py`), which runs the worker,
passes its output to the launcher over a connection of its own and ends it with everything it started. The launcher
(`job.py`) prints the output, decides when the job is over and says which worker ended it.

| file | subject |
|---|---|
| `command.py` | the whole: options, hosts, attempts |
| `options.py` | the command line |
| `hosts.py` | the file of hosts, which worker runs where, copies of the working directory |
| `mpirun.py` | which mpirun, and its command line |
| `job.py` | one attempt to run the job, seen from the launcher |
| `supervisor.py` | one worker, seen from its host; a program of the standard library alone |
| `channel.py` | messages between the two |
| `lines.py` | output as whole lines and progress bars, and how it is shown |
| `variables.py` | variables of the environment that every worker has; plain mpirun's workers too |
"""
