"""The names that app, driver and judge share. The app itself is loaded only by the processes that run it."""

DATABASE, FOLDER, VERSION, AGENT = "DEPLOY_DATABASE", "DEPLOY_FOLDER", "DEPLOY_VERSION", "DEPLOY_AGENT"
"""Environment variables: where everything is, and which version of the app this is, with which of its agents."""

KEPT, REMOVED = "chaos", "sea"
RENAMED = {"note": "jot", "guard": "sentry", "patrol": "round"}
"""What tools of the old version are called in the new one."""

GATE = "open"
"""The file that lets the calls end which last through the deploy."""
