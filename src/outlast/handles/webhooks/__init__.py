"""Webhooks as a program holds them."""
