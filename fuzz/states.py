"""Sessions and tasks in every state, made through the API, and the ids of them as examples."""

from typing import Any

import httpx2


async def fill(client: httpx2.AsyncClient) -> dict[str, list[str]]:
    """Idle, running, held, failed, archived; tasks that run, were cancelled; messages that wait."""
    found: dict[str, list[str]] = {"session_id": [], "task_id": [], "input_id": []}
    for words in ([], ["hello"], ["break"], ["wait", "later"], ["survey"], ["survey", "survey"], ["wait", "stop"]):
        session_id = (await _post(client, "/v1/sessions", {"title": " ".join(words) or "empty"}))["id"]
        found["session_id"].append(session_id)
        for word in words:
            if word == "stop":
                await _post(client, f"/v1/sessions/{session_id}/stop", {})
                continue
            sent = await _post(client, f"/v1/sessions/{session_id}/messages", {"text": word, "when_busy": "queue"})
            found["input_id"].append(sent["input_id"])
            if word != "wait":
                await client.get(f"/v1/sessions/{session_id}/result", params={"wait": 5})
    await client.patch(f"/v1/sessions/{found['session_id'][1]}", json={"is_archived": True})
    tasks = (await client.get("/v1/tasks")).json()["items"]
    found["task_id"] = [each["id"] for each in tasks]
    if tasks:
        await _post(client, f"/v1/tasks/{tasks[0]['id']}/cancel", {"wait": 1})
    return found


async def _post(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    answer.raise_for_status()
    return answer.json()
