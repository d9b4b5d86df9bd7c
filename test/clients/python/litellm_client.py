import json

import litellm
from pydantic import BaseModel
from report import ADD, BUSY, GIVEN, ORIGIN, SLOW, TOO_LONG, equal, freed, raised_by, works

litellm.suppress_debug_info = True


class Answer(BaseModel):
    answer: int


def asked(content, origin=ORIGIN, model=GIVEN["generator"]):
    messages = [{"role": "user", "content": content}]
    place = {"api_base": f"{origin}/v1", "api_key": "none", "num_retries": 0, "max_retries": 0}
    return {"model": f"openai/{model}", "messages": messages, "temperature": 0, **place}


@works
def chat():
    answer = litellm.completion(**asked("hello"))
    equal([answer.choices[0].message.content, answer.usage.completion_tokens], [" from the chain.", 4])


@works
def stream():
    chunks = list(litellm.completion(**asked("hello"), stream=True, stream_options={"include_usage": True}))
    equal("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), " from the chain.")
    equal([chunk.usage.completion_tokens for chunk in chunks if getattr(chunk, "usage", None)][-1], 4)


@works
def tools():
    call = litellm.completion(**asked("call"), tools=[ADD]).choices[0].message.tool_calls[0].function
    equal([call.name, json.loads(call.arguments)], ["add", {"a": 1, "b": 2}])


@works
def schema():
    answer = litellm.completion(**asked("json"), response_format=Answer)
    equal(json.loads(answer.choices[0].message.content), {"answer": 42})


@works
def embeddings():
    place = {"api_base": f"{ORIGIN}/v1", "api_key": "none"}
    data = litellm.embedding(model=f"openai/{GIVEN['embedder']}", input=["the cat", "a dog"], **place).data
    equal([len(each["embedding"]) for each in data], [32, 32])


@works
def rerank():
    documents = ["a cat sat", "the quick brown fox", "the mat"]
    place = {"api_base": ORIGIN, "api_key": "none"}
    answer = litellm.rerank(model=f"cohere/{GIVEN['reranker']}", query="the quick fox", documents=documents, **place)
    equal(sorted(result["index"] for result in answer.results), [0, 1, 2])


@works
def cancel():
    chunks = litellm.completion(**asked("drip", SLOW, "puppet"), stream=True)
    next(chunk for chunk in chunks if chunk.choices[0].delta.content)
    chunks.completion_stream.close()
    freed()


@works
def errors():
    long = raised_by(lambda: litellm.completion(**asked(TOO_LONG)))
    assert isinstance(long, litellm.ContextWindowExceededError), repr(long)
    gone = raised_by(lambda: litellm.completion(**asked("hello", model="gone")))
    assert isinstance(gone, litellm.NotFoundError), repr(gone)
    busy = raised_by(lambda: litellm.completion(**asked("hi", BUSY, "puppet")))
    assert isinstance(busy, litellm.ServiceUnavailableError), repr(busy)


@works
def fallback():
    """What a busy deployment refuses goes to another one."""
    busy = {"model": "openai/puppet", "api_base": f"{BUSY}/v1", "api_key": "none"}
    free = {"model": f"openai/{GIVEN['generator']}", "api_base": f"{ORIGIN}/v1", "api_key": "none"}
    router = litellm.Router(
        model_list=[{"model_name": "busy", "litellm_params": busy}, {"model_name": "free", "litellm_params": free}],
        fallbacks=[{"busy": ["free"]}],
        num_retries=0,
    )
    answer = router.completion(model="busy", messages=[{"role": "user", "content": "hello"}], temperature=0)
    equal(answer.choices[0].message.content, " from the chain.")
