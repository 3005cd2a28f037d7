"""When something is to happen: cron, one time or a delay, in a zone. Pure: it is told what time it is."""
