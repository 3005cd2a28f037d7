"""What a call passes before it runs, one module each; `standing` lists them in their order."""
