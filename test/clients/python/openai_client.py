import json

import openai
from pydantic import BaseModel
from report import ADD, BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works


def client_of(origin):
    return openai.OpenAI(base_url=f"{origin}/v1", api_key="none", max_retries=0)


client = client_of(ORIGIN)


class Answer(BaseModel):
    answer: int


def asked(content):
    return {"model": GIVEN["generator"], "messages": [{"role": "user", "content": content}], "temperature": 0}


@works
def chat():
    answer = client.chat.completions.create(**asked("hello"))
    equal(answer.choices[0].message.content, " from the chain.")
    equal(answer.usage.completion_tokens, 4)


@works
def stream():
    chunks = list(client.chat.completions.create(**asked("hello"), stream=True, stream_options={"include_usage": True}))
    equal("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), " from the chain.")
    equal(chunks[-1].usage.completion_tokens, 4)


@works
def tools():
    choice = client.chat.completions.create(**asked("call"), tools=[ADD]).choices[0]
    call = choice.message.tool_calls[0].function
    equal([choice.finish_reason, call.name, json.loads(call.arguments)], ["tool_calls", "add", {"a": 1, "b": 2}])


@works
def schema():
    answer = client.chat.completions.parse(**asked("json"), response_format=Answer)
    equal(answer.choices[0].message.parsed, Answer(answer=42))


@works
def responses():
    answer = client.responses.create(model=GIVEN["generator"], input="hello", temperature=0)
    equal(answer.output_text, " from the chain.")
    with client.responses.stream(model=GIVEN["generator"], input="hello", temperature=0) as events:
        equal(events.get_final_response().output_text, " from the chain.")


@works
def embeddings():
    data = client.embeddings.create(model=GIVEN["embedder"], input=["the cat", "a dog"]).data
    equal([len(each.embedding) for each in data], [32, 32])


@works
def models():
    assert GIVEN["generator"] in [model.id for model in client.models.list()]


@works
def cancel():
    messages = [{"role": "user", "content": "drip"}]
    with client_of(SLOW).chat.completions.create(model="puppet", messages=messages, stream=True) as chunks:
        next(chunk for chunk in chunks if chunk.choices[0].delta.content)
    freed()


@works
def errors():
    long = raised_by(lambda: client.chat.completions.create(**asked(TOO_LONG)))
    assert isinstance(long, openai.BadRequestError), long
    equal(long.code, "context_length_exceeded")
    assert "maximum context length is 4096 tokens" in long.message, long
    gone = raised_by(lambda: client.chat.completions.create(**asked("hello") | {"model": "gone"}))
    assert isinstance(gone, openai.NotFoundError), gone
    equal(gone.code, "model_not_found")
    messages = [{"role": "user", "content": "hi"}]
    busy = raised_by(lambda: client_of(BUSY).chat.completions.create(model="puppet", messages=messages))
    equal([busy.status_code, busy.code, busy.type], [503, "inference_capacity", "server_error"])
