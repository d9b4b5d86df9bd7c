import json

import ollama
from report import ADD, BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works

client = ollama.Client(host=ORIGIN)
model = GIVEN["generator"]
options = {"temperature": 0, "repeat_penalty": 1}


def said(content):
    return [{"role": "user", "content": content}]


@works
def chat():
    answer = client.chat(model=model, messages=said("hello"), options=options)
    equal([answer.message.content, answer.eval_count], [" from the chain.", 4])


@works
def stream():
    parts = client.chat(model=model, messages=said("hello"), options=options, stream=True)
    equal("".join(part.message.content for part in parts), " from the chain.")


@works
def tools():
    call = client.chat(model=model, messages=said("call"), tools=[ADD], options=options).message.tool_calls[0].function
    equal([call.name, call.arguments], ["add", {"a": 1, "b": 2}])


@works
def schema():
    shape = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    answer = client.chat(model=model, messages=said("json"), format=shape, options=options)
    equal(json.loads(answer.message.content), {"answer": 42})


@works
def embeddings():
    answer = client.embed(model=GIVEN["embedder"], input=["the cat", "a dog"])
    equal([len(vector) for vector in answer.embeddings], [32, 32])


@works
def models():
    assert f"{model}:latest" in [each.model for each in client.list().models]
    client.generate(model=model, prompt="")
    loaded = {each.model: each.expires_at for each in client.ps().models}
    assert loaded[f"{model}:latest"] is not None


@works
def cancel():
    parts = ollama.Client(host=SLOW).chat(model="puppet", messages=said("drip"), stream=True)
    next(part for part in parts if part.message.content)
    parts.close()
    freed()


@works
def errors():
    gone = raised_by(lambda: client.chat(model="gone", messages=said("hello")))
    equal(gone.status_code, 404)
    assert "model_not_found" in gone.error, gone
    long = raised_by(lambda: client.chat(model=model, messages=said(TOO_LONG)))
    assert "maximum context length is 4096 tokens" in long.error, long
    busy = raised_by(lambda: ollama.Client(host=BUSY).chat(model="puppet", messages=said("hi")))
    equal(busy.status_code, 503)
