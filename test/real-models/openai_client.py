"""Drives the routes with the official Python client and prints what it got, as JSON. Arguments: base URL, generator, embedder."""

import json
import sys

import openai
from pydantic import BaseModel

base_url, generator, embedder = sys.argv[1:4]
client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)


class City(BaseModel):
    name: str
    population: int


def ask(text, **more):
    messages = [{"role": "user", "content": text}]
    return {"model": generator, "messages": messages, "temperature": 0, "max_completion_tokens": 60, **more}


found = {"version": openai.__version__}
question = ask("What is the capital of France? Answer in one sentence.")
found["whole"] = client.chat.completions.create(**question).choices[0].message.content
found["streamed"] = "".join(
    chunk.choices[0].delta.content or ""
    for chunk in client.chat.completions.create(**question, stream=True)
    if chunk.choices
)
with client.chat.completions.stream(**question) as stream:
    found["helped"] = stream.get_final_completion().choices[0].message.content

parameters = City.model_json_schema() | {"additionalProperties": False}
tools = [{"type": "function", "function": {"name": "save_city", "parameters": parameters, "strict": True}}]
call = client.chat.completions.create(**ask("Save Paris.", tools=tools, tool_choice="required", parallel_tool_calls=False))
found["call"] = {
    "reason": call.choices[0].finish_reason,
    "name": call.choices[0].message.tool_calls[0].function.name,
    "arguments": json.loads(call.choices[0].message.tool_calls[0].function.arguments),
}
parsed = client.chat.completions.parse(**ask("Tell me about Rome.", response_format=City))
found["parsed"] = parsed.choices[0].message.parsed.model_dump()

texts = ["a cat", "a dog"]
as_float = client.embeddings.create(model=embedder, input=texts, encoding_format="float").data
as_base64 = client.embeddings.create(model=embedder, input=texts).data
found["embeddings_differ_by"] = max(
    abs(left - right) for a, b in zip(as_float, as_base64) for left, right in zip(a.embedding, b.embedding)
)
try:
    client.chat.completions.create(**ask("hi") | {"model": "gone"})
except openai.NotFoundError as error:
    found["error"] = error.body
print(json.dumps(found))
