create table if not exists projects (
    stage text primary key,
    server text not null,              -- base URL, no secret in it
    project integer not null,          -- its number on the server
    source text not null,              -- what its annotations are kept under
    annotators integer not null,       -- wanted for each item
    anyone integer not null            -- 1: answers count whoever gives them; 0: the pool's only
);
create table if not exists items (
    stage text not null,
    item text not null,
    place integer not null,            -- order in which items were given out
    shown text not null,               -- JSON: what annotators see
    facts text not null,               -- JSON: what they must not see
    task integer,                      -- number on the server; null: not there, or not yet known
    primary key (stage, item)
);
create table if not exists annotations (
    stage text not null,
    source text not null,              -- the project on a server, or 'mturk'
    annotation text not null,          -- its id there
    item text not null,
    annotator text not null,
    high text,
    low text,
    rating integer,
    seconds real,
    created text not null,             -- ISO 8601
    updated text not null,
    prefilled_by text not null,        -- model whose answer was on the page; '' for none
    cancelled integer not null,        -- 1: the annotator skipped the item
    removed integer not null,          -- 1: no longer on the server
    primary key (stage, source, annotation)
);
create table if not exists proposals (
    stage text not null,
    item text not null,
    model text not null,
    high text,
    low text,
    rating integer,
    sent integer not null,             -- 1: on the server
    primary key (stage, item, model)
);
create table if not exists pool (
    annotator text primary key,
    accepted integer not null,
    decided_by text not null,          -- 'test' or 'hand'; the hand goes first
    condition_score real,              -- share in [0, 1] of written conditions that will do
    rating_score real                  -- share in [0, 1] of ratings near the right answer
);
