"""How the parts are put together: the settings each gets, the database that is opened, the worker and its engine."""
