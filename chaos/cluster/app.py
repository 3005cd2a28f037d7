"""What the commands are given to run. Imported only in processes of a cluster: it says which of them this one is."""

import os
from pathlib import Path

from chaos.cluster.agent import make_runtime, note_names
from chaos.cluster.process import DATABASE, FOLDER, NUMBER

_folder, _number = Path(os.environ[FOLDER]), int(os.environ[NUMBER])
note_names(_folder, _number)
outlast = make_runtime(_folder, os.environ[DATABASE], _number)
