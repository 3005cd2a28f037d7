"""Tools to give to an agent, opt-in: `Agent(..., tools=[outlast.toolkit.shell_tool()])`."""

from outlast.toolkit.fetch import fetch_tool
from outlast.toolkit.files import file_tools
from outlast.toolkit.report_progress import report_progress_tool
from outlast.toolkit.shell import shell_tool
from outlast.toolkit.time import time_tool
from outlast.toolkit.todo import todo_tools

__all__ = ["fetch_tool", "file_tools", "report_progress_tool", "shell_tool", "time_tool", "todo_tools"]
